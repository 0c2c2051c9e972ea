import com.sun.tools.attach.VirtualMachine;
import java.util.TreeSet;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** The MBeans of a JVM, given by its process id and patterns of their names: a line for each attribute. */
public class MBeans {
    public static void main(String[] arguments) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(arguments[0]);
        String address = machine.startLocalManagementAgent();
        machine.detach();
        TreeSet<String> lines = new TreeSet<>();
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            for (int i = 1; i < arguments.length; i++) {
                for (ObjectName name : server.queryNames(new ObjectName(arguments[i]), null)) {
                    for (MBeanAttributeInfo attribute : server.getMBeanInfo(name).getAttributes()) {
                        lines.add(name.getCanonicalName() + " " + attribute.getName());
                    }
                }
            }
        }
        lines.forEach(System.out::println);
        System.exit(0);
    }
}
